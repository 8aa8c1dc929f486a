"""The offline model: a stand-in without network, key or weights, so that everything runs without a configured one."""
