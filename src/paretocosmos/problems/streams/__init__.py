"""Problems whose samples are read from datasets and loaders."""
