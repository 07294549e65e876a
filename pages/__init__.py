"""The pages of the app: thin scripts that choose, call rag_core and draw with components/."""
