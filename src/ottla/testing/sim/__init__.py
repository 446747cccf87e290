"""Whole quorums and clusters in one thread under a seed: time, network, disks and dice are simulated."""
