mkdir -p gate
echo "listen $port ssl;" > gate/listen.conf
if [ "$$(uname)" != Linux ] || [ -e /proc/net/if_inet6 ]; then     # a kernel without IPv6 refuses the address
    echo "listen [::]:$port ssl ipv6only=on;" >> gate/listen.conf
fi
set -- -p "$$PWD/" -e stderr -c gate.conf
if [ "$$(id -u)" = 0 ]; then
    echo "gate.sh: started as root, so that nginx's workers run as root too; another user is enough" >&2
    set -- "$$@" -g "user root;"     # the workers' usual user cannot enter this folder, which holds keys
fi
exec nginx "$$@"
