package attend

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// answerEnv marks a process as attended, and has the number of the pipe for its exit code.
	answerEnv = "HEAPCAM_ANSWER_FD"
	// stopWithin is how long an attended process has to obey a signal.
	stopWithin = 2 * time.Second
)

// Run runs this program once more with the same arguments, and gives its exit code. Where its disk hangs, that
// process is what is left; this one ends. attended is false in that process, and where it cannot be started.
func Run() (code int, attended bool) {
	if os.Getenv(answerEnv) != "" {
		return 0, false
	}
	answers, answer, err := os.Pipe()
	if err != nil {
		return 0, false
	}
	runtime.LockOSThread() // the child's death signal follows the thread that started it
	child := &exec.Cmd{
		Path: "/proc/self/exe", Args: os.Args, Env: append(os.Environ(), answerEnv+"=3"),
		Stdin: os.Stdin, ExtraFiles: []*os.File{answer},
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	var relays sync.WaitGroup
	var ends []*os.File
	relay := func(to *os.File) *os.File {
		st, err := to.Stat()
		if err != nil || st.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
			return to
		}
		r, w, err := os.Pipe() // who reads the other end of ours waits until nobody holds it
		if err != nil {
			return to
		}
		ends = append(ends, w)
		relays.Go(func() { io.Copy(to, r) })
		return w
	}
	child.Stdout, child.Stderr = relay(os.Stdout), relay(os.Stderr)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err = child.Start()
	answer.Close()
	for _, f := range ends {
		f.Close()
	}
	if err != nil {
		signal.Stop(signals)
		return 0, false
	}
	statuses := make(chan int, 1)
	go func() {
		var b [1]byte
		if n, _ := answers.Read(b[:]); n == 1 {
			relays.Wait() // it has closed its ends
			statuses <- int(b[0])
			return
		}
		_ = child.Wait() // it ended otherwise
		relays.Wait()
		code := child.ProcessState.ExitCode()
		if w, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			code = 128 + int(w.Signal())
		}
		statuses <- code
	}()
	var late <-chan time.Time
	for {
		select {
		case code := <-statuses:
			return code, true
		case s := <-signals:
			_ = child.Process.Signal(s)
			if n, ok := s.(syscall.Signal); ok && late == nil {
				code, late = 128+int(n), time.After(stopWithin)
			}
		case <-late:
			return code, true
		}
	}
}

// Answering gives what an attended process does at its end with its exit code; its output is complete then. Nothing in
// any other process.
func Answering() func(code int) {
	fd, err := strconv.Atoi(os.Getenv(answerEnv))
	_ = os.Unsetenv(answerEnv)
	if err != nil {
		return func(int) {}
	}
	syscall.CloseOnExec(fd)
	to := os.NewFile(uintptr(fd), "answer")
	return func(code int) {
		os.Stdout.Close()
		os.Stderr.Close()
		_, _ = to.Write([]byte{byte(code)})
	}
}
