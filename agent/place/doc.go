// Package place puts files where a JVM sees them: the probe's library and the folder for its shared ring. Then it has
// the JVM load the library.
//
// Terms. A JVM's *root* is the root folder that its process sees: another one than ours if it lives in a container.
// Its *base* folders (/tmp, /dev/shm, …) are folders of that root in which its user can make folders.
//
// The agent runs as root; a JVM's user may be anyone, and may change what lies below the JVM's root at any time. So:
//
//  1. A path below a JVM's root is resolved inside that root, from an open descriptor of the process that was decided
//     on.
//  2. Files are made by a thread with the ids of the JVM's user and no rights of root's. Root itself makes a folder
//     only where nobody but root can rename it, and never for a JVM of another user namespace.
//  3. A folder that is written to belongs to the JVM's user, and nobody else can write to it; this is checked on the
//     open folder. Its parent lets nobody else rename it; where a container has no such parent, another user of that
//     container could.
//  4. Only a regular file is read, bounded. An existing library is never written to: JVMs may have it mapped. It is
//     written under a new name and renamed.
//
// Errors are *jvms.RecordError, or those of the system. docs/design/0013-placing-files.md says why.
package place
