package toolpages

import (
	"embed"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"parley/chat"
	"parley/store"
)

//go:embed icons/*.svg
var icons embed.FS

// iconNames lists the icons that Parley brings (B-061).
func iconNames() (names []string) {
	all, _ := fs.ReadDir(icons, "icons") // it is embedded
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// serveIcon serves an icon of tools (B-024, B-061).
func serveIcon(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	name := r.PathValue("name")
	if !slices.Contains(iconNames(), name) {
		return store.ErrNotFound
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	http.ServeFileFS(w, r, icons, "icons/"+name)
	return nil
}

// iconPath returns the address of an icon, "" if there is none of that name.
func iconPath(name string) string {
	if strings.TrimSpace(name) == "" || !slices.Contains(iconNames(), name) {
		return ""
	}
	return "/static/icons/" + name
}
