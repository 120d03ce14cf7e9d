"""How settings are told and read, by whichever process: kinds, property files, who wins."""
