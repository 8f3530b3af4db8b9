"""The operator's console: what a deployment on AWS is given before anybody can call its API."""
