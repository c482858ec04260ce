"""What the launcher gives to its tasks."""

from __future__ import annotations

import socket

import pytest

from pipeline.cluster import launcher


def _port(address: str) -> int:
    host, port = address.split(":")
    assert host == "127.0.0.1"
    return int(port)


def test_addresses_are_free_and_differ():
    ports = [_port(address) for address in launcher.free_addresses(20)]
    assert len(set(ports)) == 20
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_the_kernel_gives_none_of_them_to_a_connection():
    with open(launcher._EPHEMERAL_PORTS) as f:
        first, last = map(int, f.read().split())
    if first <= launcher._FIRST_PORT:
        pytest.skip("here the kernel gives nearly all of them")
    for address in launcher.free_addresses(20):
        assert not first <= _port(address) <= last


def test_where_all_ports_are_the_kernels(tmp_path, monkeypatch):
    path = tmp_path / "range"
    path.write_text("1024\t65535\n")
    monkeypatch.setattr(launcher, "_EPHEMERAL_PORTS", str(path))
    assert len(set(launcher.free_addresses(3))) == 3


def test_ports_that_are_taken_are_passed_over(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = tmp_path / "range"
        path.write_text(f"{port + 1} 65535\n")
        monkeypatch.setattr(launcher, "_EPHEMERAL_PORTS", str(path))
        monkeypatch.setattr(launcher, "_FIRST_PORT", port)
        (address,) = launcher.free_addresses(1)
        assert _port(address) != port
