//go:build !perhaps_env

package perhaps

// #cgo pkg-config: perhaps
import "C"
