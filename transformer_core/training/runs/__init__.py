"""Training runs that go on without the page that started them: a folder on disk, and a worker process that fills it.

store/ reads and writes a run's folder and keeps the order of those that wait, launcher.py starts workers, worker/
trains, exchange/ exports and imports; run_list.py is the list of all runs, presets.py and settings.py make specs.
"""
