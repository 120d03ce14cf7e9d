"""Scenarios: the file format, its validation, and the resolved form (the case) that a run uses.

    file.yaml --loader--> Scenario --resolve--> Case --> case.json
                 |  schema: types and units         all defaults and addresses resolved
                 |  validation: rules that involve several tables
              file:line:column of every error

Other packages define how faults are applied and checked.
"""
