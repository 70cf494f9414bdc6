package sandbox

import (
	"os"
	"path/filepath"
)

// SystemFolders returns what every program sees read-only: the system's programs and libraries, and
// those files of /etc that they need. Nothing else of /etc is there, because it has secrets: shadow,
// keys of hosts, passwords of networks and of services. All of them exist.
func SystemFolders() []string { return append(ProgramFolders(), EtcFiles()...) }

// ProgramFolders returns the folders of SystemFolders that are not in /etc.
func ProgramFolders() (paths []string) {
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// EtcFiles returns the files and folders of SystemFolders that are in /etc.
func EtcFiles() []string { return etcFiles("/etc") }

// etcFiles returns what programs see of the folder etc.
func etcFiles(folder string) (paths []string) {
	for _, pattern := range etc {
		found, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are correct
		paths = append(paths, found...)
	}
	return paths
}

// etc has what programs need of /etc, and nothing in which people write passwords or keys: no settings of
// PHP, nor those of R for this machine, nor what shells export when somebody logs in.
var etc = []string{
	// Where names come from.
	"passwd", "group", "hosts", "hostname", "host.conf", "nsswitch.conf", "resolv.conf", "gai.conf",
	"services", "protocols", "networks", "ethertypes", "rpc",

	// How programs are found and loaded.
	"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*",

	// Certificates of authorities, without the private keys of this machine.
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf",
	"pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "crypto-policies",

	// The system, its time and its languages.
	"os-release", "lsb-release", "debian_version", "alpine-release", "redhat-release", "issue",
	"localtime", "timezone", "adjtime", "locale.alias", "locale.conf", "locale.gen", "default/locale",
	"mime.types", "magic", "magic.mime", "mailcap", "terminfo", "inputrc", "shells", "login.defs", "fonts", "papersize",

	// Programming languages and their tools.
	"python3*/sitecustomize.py", "perl/XML/SAX/ParserDetails.ini", "texmf", "ImageMagick-*", "matplotlibrc",
	"java-*/*.cfg", "java-*/logging.properties", "java-*/security/java.*", "java-*/security/policy",
	"R/ldpaths", "R/Renviron", "R/Makeconf", "R/javaconf", "R/repositories",
	"gitattributes",
}
