"""Problems whose rows are people, firms or loans: a table's columns, as a network reads them."""
