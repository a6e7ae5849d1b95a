"""Why?: the questions that every learner asks of attention, each as an experiment that measures its answer.

Read next: timing.py, sentence.py, then a question a file, from scaling.py to gates.py.
"""
