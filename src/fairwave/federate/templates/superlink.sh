# The database outlives a restart: devices stay registered, and devices that were revoked stay out.
exec flower-superlink --host 127.0.0.1 --port $inner --ssl-ca-certfile ca.crt --ssl-certfile server.crt \
    --ssl-keyfile server.key --enable-supernode-auth --database "$$PWD/superlink.sqlite"
