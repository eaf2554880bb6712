// Package fleetsql runs the queries of docs/how-to/fleet-queries.md in DuckDB, and those of fleet-clickhouse.md in
// ClickHouse, on the tables of a fleet that it makes with heapcam's own writer. It is a module of its own, since DuckDB
// is 60 MB of C++ that nothing else needs; `make test-full` runs it.
package fleetsql
