"""What tests ask for of the pytest plug-in ``handlax_pytest``, without pytest: leaks, traces, snapshots of programs."""
