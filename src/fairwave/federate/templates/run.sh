exec fairwave federate start .
