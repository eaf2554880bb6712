// Package analysis turns a replayed recording into what people ask for first: the report.
// It renders to JSON (schema heapcam.report/1) and to text that fits one screen. It reads through package heap and never touches files.
package analysis
