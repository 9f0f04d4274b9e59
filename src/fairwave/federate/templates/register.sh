exec fairwave federate register .
