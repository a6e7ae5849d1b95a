"""Figures: labelled arrays in, a picture's data out. No Streamlit and no torch here."""
