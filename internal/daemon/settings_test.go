package daemon

import (
	"reflect"
	"slices"
	"testing"

	"github.com/sandboxd/sandboxd/internal/config"
)

// TestFixedSettings: every setting is taken by a reload, or named as one that is not.
func TestFixedSettings(t *testing.T) {
	reloaded := []string{"Packages", "Principals", "HostTools", "Grace"}
	for f := range reflect.TypeFor[config.Config]().Fields() {
		c := &config.Config{}
		if v := reflect.ValueOf(c).Elem().FieldByIndex(f.Index); f.IsExported() && !slices.Contains(reloaded, f.Name) {
			if !change(v) {
				t.Errorf("%s: nothing of it can be changed", f.Name)
			}
			if names := fixedSettings(&config.Config{}, c); len(names) != 1 {
				t.Errorf("%s: named %q", f.Name, names)
			}
		}
	}
}

// change gives a value, or the first part of it that can be, another one.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			if change(v.Field(i)) {
				return true
			}
		}
		return false
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		return false
	}
	return true
}
