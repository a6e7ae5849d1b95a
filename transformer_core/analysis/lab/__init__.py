"""The Lab: interventions on any model that the app shows, each beside a random control of equal size."""
