package s3

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// file takes credentials from a file like ~/.aws/credentials. That of minio-go would start a program that the file
// names.
type file struct {
	name string // "": AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials
	read bool
}

// IsExpired has the file read once.
func (f *file) IsExpired() bool { return !f.read }

// Retrieve reads the profile AWS_PROFILE, or default. The errors do not have what stands in the file.
func (f *file) Retrieve() (credentials.Value, error) {
	name := cmp.Or(f.name, os.Getenv("AWS_SHARED_CREDENTIALS_FILE"))
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return credentials.Value{}, err
		}
		name = filepath.Join(home, ".aws", "credentials")
	}
	st, err := os.Stat(name)
	if err != nil {
		return credentials.Value{}, err
	}
	if !st.Mode().IsRegular() || st.Size() > 1<<20 {
		return credentials.Value{}, fmt.Errorf("%s: no file of credentials", name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return credentials.Value{}, err
	}
	v, err := profile(string(b), cmp.Or(os.Getenv("AWS_PROFILE"), "default"))
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	f.read = true
	return v, nil
}

// RetrieveWithCredContext is Retrieve.
func (f *file) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return f.Retrieve()
}

// profile reads a section of an INI file.
func profile(text, want string) (credentials.Value, error) {
	v := credentials.Value{SignerType: credentials.SignatureV4}
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			in = strings.TrimSpace(line[1:len(line)-1]) == want
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !in || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "aws_access_key_id":
			v.AccessKeyID = value
		case "aws_secret_access_key":
			v.SecretAccessKey = value
		case "aws_session_token":
			v.SessionToken = value
		case "credential_process":
			return v, errors.New("credential_process is not supported: heapcam starts no program")
		}
	}
	if v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return v, fmt.Errorf("no aws_access_key_id and aws_secret_access_key in [%s]", want)
	}
	return v, nil
}
