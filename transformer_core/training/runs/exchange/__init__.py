"""Runs that leave this machine or come to it: zip files, and the script that repeats a run."""
