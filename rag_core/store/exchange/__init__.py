"""Labels as files of the field: JSONL (lossless), TREC qrels, BEIR, CSV; and the plan that an import follows."""
