"""Files of texts and labels: read, split, joined, fetched and written."""

#: Formats that a data set can be written in; here, because the command line names them and imports
#: nothing that reads data before it is needed.
FORMS = ("tsv", "csv", "jsonl")
