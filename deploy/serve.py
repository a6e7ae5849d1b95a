"""Several processes of Vitrine on this machine behind one address: starts them and haproxy, ends all together.

The proxy's configuration is deploy/haproxy.cfg, with as many servers as there are processes.
Run: python deploy/serve.py [--processes N] [--port PORT]
"""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CONFIG = PROJECT / "deploy" / "haproxy.cfg"
NO_PROXY = "Several processes need haproxy in front of them; on Debian and Ubuntu: apt-get install haproxy"
FIRST_PORT, MOST_PROCESSES = 8511, 16  # a port beside the address's for each process


def configuration(text: str, port: int, ports: list[int]) -> str:
    """Return haproxy's configuration for an address and processes.

    Args:
        text: of deploy/haproxy.cfg.
        port: that visitors come to.
        ports: of the processes.
    """
    text = re.sub(r"(?m)^    bind :\d+$", f"    bind :{port}", text)
    text = re.sub(r"(?m)^    server .*\n?", "", text).rstrip("\n")
    servers = [f"    server p{one} 127.0.0.1:{one} cookie p{one}" for one in ports]
    return "\n".join([text, *servers]) + "\n"


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", port))
        except OSError:
            return False
    return True


def main() -> int:
    """Serve until all processes have ended or somebody stops it; exit status 2 where it cannot begin."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=2, choices=range(1, MOST_PROCESSES + 1), metavar="N")
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--first-port", type=int, default=FIRST_PORT, help="of the processes")
    given = parser.parse_args()
    haproxy = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if haproxy is None:
        print(NO_PROXY, file=sys.stderr)
        return 2
    ports = [given.first_port + number for number in range(given.processes)]
    if taken := [port for port in (given.port, *ports) if not _is_free(port)]:
        print(f"Something listens to port {taken[0]} already; --port and --first-port name others", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "haproxy.cfg"
        config.write_text(configuration(CONFIG.read_text(encoding="utf-8"), given.port, ports), encoding="utf-8")
        app = [sys.executable, "-P", "-m", "streamlit", "run", str(PROJECT / "app.py"), "--server.port"]
        hosts = {"VITRINE_HOSTS": os.environ.get("VITRINE_HOSTS", "localhost")}  # visitors are told apart
        commands = [*([*app, str(port)] for port in ports), [haproxy, "-db", "-f", str(config)]]
        started = [subprocess.Popen(command, cwd=PROJECT, env=os.environ | hosts) for command in commands]
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            while started[-1].poll() is None and any(one.poll() is None for one in started[:-1]):
                time.sleep(0.5)  # one that ended is left out by the proxy, the others go on
        except KeyboardInterrupt:
            pass
        finally:
            for one in started:
                one.terminate()
            for one in started:
                one.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
