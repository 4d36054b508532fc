"""Problems whose fronts are known in closed form."""
