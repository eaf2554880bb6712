// Package tables has the rows of the tables that many recordings share, and writes them as Parquet files. The verb
// export writes them from a recording, and an agent writes them as it records.
//
// Terms: Whose are the columns that say whose a row is. A schema is heapcam.export.TABLE/1; names, types and meaning of
// columns are its version. Compatible changes only add columns.
//
// It knows nothing of recordings.
package tables
