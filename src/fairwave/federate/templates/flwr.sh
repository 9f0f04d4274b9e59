if [ ! -e flower/config.toml ]; then echo "flwr.sh: ./register.sh writes Flower's settings; do that first" >&2; exit 2; fi
exec flwr "$$@"
