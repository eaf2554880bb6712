package session

import "testing"

func TestFolderName(t *testing.T) {
	if got := FolderName("../a b", 7, 9); got != "_a_b-7-9" {
		t.Errorf("FolderName = %q", got)
	}
}
