exec fairwave device run .
