module beside { }
