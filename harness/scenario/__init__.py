"""What a run is asked to do: the scenario file, its rules, and the case made from it.

    file.yaml --loader--> Scenario --resolve--> Case --> case.json
                 |  model: shape and units         every default filled in, every address known
                 |  sense: what cannot happen
              file:line of every fault

Refuses to know how a fault is applied or judged. Not covered: more than two hosts or one link,
matrices of drivers, faults bound to a time, a position or a state.
"""
