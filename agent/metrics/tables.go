package metrics

var (
	tablePending = define(gauge, "tables_pending", "Table files that the bucket of upload does not have yet.", "")
	tableDone    = define(counter, "tables_uploaded_total", "Table files that were uploaded.", "")
	tableFailed  = define(counter, "table_upload_failures_total", "Uploads of table files that failed.",
		"They are tried again. The log has the error.")
	tableDropped = define(counter, "tables_dropped_total", "Table files that were lost.",
		"64 MiB waited while the bucket was away.")
	tableLeftOut = define(counter, "table_rows_left_out_total", "Rows that exceeded the bounds of a table.",
		"At most 5,000 collections of a JVM in one interval, and 100 verdicts of an incident.")
)

// tables gives the metrics of tables, if any are written.
func (c collector) tables(put func(m metric, v float64, labels ...string)) {
	if c.src.Tables == nil {
		return
	}
	if s := c.src.Tables(); s != nil {
		put(tablePending, float64(s.Pending))
		put(tableDone, float64(s.Uploaded))
		put(tableFailed, float64(s.Failed))
		put(tableDropped, float64(s.Dropped))
		put(tableLeftOut, float64(s.LeftOut))
	}
}
