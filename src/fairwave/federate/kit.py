"""A folder for a real deployment: one part per machine, each with what it needs and a script that starts it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from fairwave.errors import OutputError
from fairwave.federate.agreement import Agreement
from fairwave.federate.app_folder import write_app
from fairwave.federate.credentials import Authority, check_host, make_device_key
from fairwave.signing import KEY, PUBLIC, make_signing_key

_FIRST = """\
#!/bin/sh
# $what
set -eu
cd "$$(dirname "$$0")"
export FLWR_HOME="$$PWD/flower" FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
umask 077
mkdir -p flower
case "$$PWD" in *[\\"\\\\]*) echo "move this folder to a path without quotes and backslashes" >&2; exit 2;; esac
"""

_CONFIG = """\
cat > flower/config.toml <<END
[superlink]
default = "federation"
[superlink.federation]
address = "127.0.0.1:$inner"
root-certificates = "$$PWD/ca.crt"
END
"""

_START = """\
exec flower-superlink --host 127.0.0.1 --port $inner --ssl-ca-certfile ca.crt --ssl-certfile server.crt \\
    --ssl-keyfile server.key --enable-supernode-auth
"""

_GATE = """\
mkdir -p gate
exec nginx -p "$$PWD/" -e stderr -c gate.conf
"""

_GATE_CONF = """\
# The gate between devices and the SuperLink. Flower authenticates devices, but not whoever starts runs or registers
# keys, and serves both on one port: from outside, only what devices need passes.
daemon off;
worker_processes 1;
pid gate/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path gate;         # none of these is used: nothing is buffered on disk
    proxy_temp_path gate;
    fastcgi_temp_path gate;
    uwsgi_temp_path gate;
    scgi_temp_path gate;
    proxy_request_buffering off;
    proxy_buffering off;
    server {
        listen $port ssl;
        ssl_certificate server.crt;
        ssl_certificate_key server.key;
        ssl_protocols TLSv1.2 TLSv1.3;
        client_max_body_size 0;         # models are as large as they are
        location /v1/fleet/ {
            proxy_pass https://127.0.0.1:$inner;
            proxy_ssl_trusted_certificate ca.crt;
            proxy_ssl_verify on;
            proxy_ssl_name localhost;
            proxy_http_version 1.1;
            proxy_set_header Host $$host;
            proxy_read_timeout 300s;
        }
        location / { return 403; }
    }
}
"""

_REGISTER = """\
for key in known_keys/*.pub; do
    flwr supernode register "$$key" federation
done
"""

_RUN = """\
exec flwr run app federation --stream --run-config "out=\\"$$PWD/run\\" known_keys=\\"$$PWD/known_keys\\""
"""

_FLWR = """\
exec flwr "$$@"
"""

_NODE = """\
# DATA=folder ./start.sh trains on data of the device's own; see data.partition in the scenario.
# ACCOUNT is one folder for all federations on this machine: they share the privacy budget of its records. Name another
# one for a data set that has no record in common with the others.
# BUDGET_EPSILON=8.0 BUDGET_DELTA=1e-5 ./start.sh sets that budget, whatever federations agree on.
account="$${ACCOUNT:-$${XDG_STATE_HOME:-$$HOME/.local/state}/fairwave/account}"
config="partition-id=$device home=\\"$$PWD/home\\" key=\\"$$PWD/node.key\\" account=\\"$$account\\""
if [ -n "$${DATA:-}" ]; then config="$$config data=\\"$$DATA\\""; fi
if [ -n "$${BUDGET_EPSILON:-}" ]; then
    config="$$config budget-epsilon=$$BUDGET_EPSILON budget-delta=$${BUDGET_DELTA:?give it with BUDGET_EPSILON}"
fi
# After a crash the access point takes up to a minute to believe that the old program is gone.
until flower-supernode --superlink $host:$port --root-certificates ca.crt --auth-supernode-private-key node.key \\
    --host 127.0.0.1 --port $${RUNTIME_PORT:-9094} --node-config "$$config"; do
    echo "device $device: trying again in 5 s; Ctrl-C ends it" >&2
    sleep 5
done
"""

_README = """\
# A federation of $count devices

1. On every machine: Python 3.11 or newer and `pip install "fairwave[flower]"`, the same version everywhere.
2. Copy `access-point/` to the access point ($host) and each `node-N/` to its device, over a channel you trust: they
   hold private keys. Keep `authority/` off the network; it is needed only to renew the certificate.
3. Access point: `./start.sh` (the SuperLink, for this machine alone), and in other terminals `./register.sh`, then
   `./gate.sh` (needs nginx), which opens port $port to devices and to nothing else. Do not open port $inner: Flower
   does not authenticate whoever starts runs there.
4. Devices: `./start.sh`.
5. Access point: `./run.sh`. The run is in `access-point/run`: `fairwave report run`, `fairwave privacy run`.
6. Access point: `fairwave privacy run --format json --out statement.json` writes a privacy statement, signed with
   `statement.key`. Whoever is to verify it needs `statement.pub`, over a channel that they trust.

Ctrl-C in `./run.sh` ends the display, not the run: `./flwr.sh list` names it, `./flwr.sh stop RUN federation` ends it.
After a crash or a stop, start what has stopped, then `./register.sh` if the access point was restarted, then
`./run.sh`: it goes on from the last stored round. `scenario.toml` and `federation.toml` in
`access-point/app/fairwave_app` hold every setting.
"""


def write_kit(folder: Path, agreement: Agreement, hosts: Sequence[str], port: int, days: int) -> None:
    """Certificates, keys, the app and scripts; nothing is overwritten."""
    for host in hosts:
        check_host(host)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: is not empty; choose a new folder")
    count = agreement.order.scenario.cell.num_devices
    shown = f"[{hosts[0]}]" if ":" in hosts[0] else hosts[0]
    words = {"host": shown, "port": str(port), "inner": str(port + 1), "count": str(count)}
    point, safe = folder / "access-point", folder / "authority"
    for part in (point, safe, point / "known_keys"):
        part.mkdir(parents=True, mode=0o700)
    authority = Authority.make(days)
    authority.write(point / "ca.crt", safe / "ca.key")
    authority.issue([*hosts, "localhost", "127.0.0.1"], days, point / "server.crt", point / "server.key")
    make_signing_key(point / KEY, point / PUBLIC)
    write_app(point / "app", agreement, Path("run"), Path("known_keys"), "./run.sh")
    _script(point / "start.sh", "Starts the access point's SuperLink.", _START, words)
    _script(point / "gate.sh", "Opens the access point to its devices.", _GATE, words)
    (point / "gate.conf").write_text(Template(_GATE_CONF).substitute(words), "utf-8")
    _script(point / "register.sh", "Tells the SuperLink which keys belong to devices.", _CONFIG + _REGISTER, words)
    _script(point / "run.sh", "Starts the federation, or goes on with it.", _CONFIG + _RUN, words)
    _script(point / "flwr.sh", "Flower's own command, with this federation's settings.", _CONFIG + _FLWR, words)
    for device in range(count):
        node = folder / f"node-{device}"
        node.mkdir(mode=0o700)
        authority.write(node / "ca.crt")
        make_device_key(node / "node.key", point / "known_keys" / f"{device}.pub")
        _script(node / "start.sh", f"Starts device {device}.", _NODE, words | {"device": str(device)})
    (folder / "README.md").write_text(Template(_README).substitute(words), "utf-8")


def _script(path: Path, what: str, body: str, words: dict[str, str]) -> None:
    path.write_text(Template(_FIRST + body).substitute(words, what=what), "utf-8")
    path.chmod(0o700)
