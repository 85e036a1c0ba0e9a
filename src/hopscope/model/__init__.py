"""The values that flow through hopscope: frozen structs and tagged unions, importing nothing of ours."""
