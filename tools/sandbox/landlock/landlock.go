// Package landlock runs programs that have confined themselves with Landlock and seccomp. It needs
// neither root nor namespaces, so that it works in containers, too.
//
// Landlock says which files a program may open and make, keeps it from tracing and signalling what
// is outside, and from connecting to it. A seccomp filter takes care of what Landlock knows nothing
// about. A process in between, the launcher (package early), confines itself and starts the program.
//
// Landlock adds rights and takes none away. So where a folder holds one that may be used less, what
// is beside that one gets its rights entry by entry, and the folder around it cannot be listed.
package landlock

// Advice is what an operator can do if this driver does not hold.
const Advice = "it needs Linux 5.13 or later with landlock among the lsm= of the kernel (cat /sys/kernel/security/lsm)"
