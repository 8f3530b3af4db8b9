"""What an operator does to a deployment on AWS before anybody can call its API."""
