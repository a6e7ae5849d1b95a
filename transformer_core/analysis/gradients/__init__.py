"""The other half of a forward pass: the loss of a text, where each gradient comes from, and whether a nudge agrees."""
