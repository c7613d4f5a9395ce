package cc

// build compiles a text, or finds its object in the cache, and loads it.
func build(text string, o Options, info *Info) (*Program, error) {
	object, err := info.Compiler.object(text, o.Timeout)
	if err != nil {
		return nil, err
	}
	return load(object)
}
