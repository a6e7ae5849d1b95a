"""Why?: questions that learners ask about attention, each answered by an experiment."""
