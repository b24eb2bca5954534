"""`attnlab bench`: how fast is this, beside others that do the same work, and beside what the machine allows?

The process that the user starts stays slim: it imports no torch, and takes no memory from what is measured.
Everything that is measured happens in children, each a fresh process: `systems` train, `children` do the rest,
`sections` say which children run and make tables of what they return.
"""
