package api

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	minToken  = 32 // characters: too many to guess
	maxTokens = 1000
)

// SecretError says that a file of secrets is open to others.
type SecretError struct {
	File string
	Why  string
}

func (e *SecretError) Error() string { return fmt.Sprintf("%s: %s", e.File, e.Why) }

type token struct {
	name  string
	scope []string
	sum   [32]byte
}

// readTokens reads a file of lines "NAME SCOPE[,SCOPE] TOKEN"; # begins a comment.
func readTokens(name string) ([]token, error) {
	if err := CheckSecret(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []token
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		w := strings.Fields(text)
		if len(w) == 0 {
			continue
		}
		bad := func(why string) error { return fmt.Errorf("%s:%d: %s", name, n, why) } // never the token
		if len(w) != 3 {
			return nil, bad("a line is: NAME SCOPE[,SCOPE] TOKEN")
		}
		t := token{name: w[0], scope: strings.Split(w[1], ","), sum: sha256.Sum256([]byte(w[2]))}
		for _, s := range t.scope {
			if !slices.Contains(remoteScope, s) {
				return nil, bad(fmt.Sprintf("scope %q is neither of %s", s, strings.Join(remoteScope, ", ")))
			}
		}
		if len(w[2]) < minToken {
			return nil, bad(fmt.Sprintf("a token has at least %d characters (openssl rand -hex 32)", minToken))
		}
		for _, o := range out {
			if o.name == t.name || o.sum == t.sum {
				return nil, bad("the name or the token stands here twice")
			}
		}
		if out = append(out, t); len(out) > maxTokens {
			return nil, bad(fmt.Sprintf("more than %d tokens", maxTokens))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no token in it", name)
	}
	return out, nil
}
