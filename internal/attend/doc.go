// Package attend runs a verb in a process of its own. A process that reads from a disk that hangs cannot be ended,
// neither by exit nor by Ctrl-C or kill. With attend the program ends all the same and leaves that process behind.
package attend
