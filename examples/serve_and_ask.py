"""A server in its own process, queried over HTTP at three preferences.

`paretocosmos serve RUN` starts the same server from the command line. The network is the one for
the Adult census data that comes with this package: is an income above 50,000 dollars a year?
"""

import json
from multiprocessing import get_context
from typing import Any
from urllib.request import Request, urlopen

from paretocosmos import load
from paretocosmos.serving import Settings, serve

PERSON = {
    "age": 45,
    "workclass": "Private",
    "fnlwgt": 180_000,
    "education": "Bachelors",
    "education-num": 13,
    "marital-status": "Married",
    "occupation": "Sales",
    "relationship": "Wife",
    "race": "White",
    "capital-gain": 0,
    "capital-loss": 0,
    "hours-per-week": 40,
    "native-country": "United-States",
}


def ask(address: str, question: dict[str, Any]) -> Any:
    """Send JSON, and read the JSON that comes back."""
    body = json.dumps(question).encode()
    request = Request(address, data=body, headers={"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    run = load("adult")
    processes = get_context("spawn")
    addresses = processes.Queue()
    settings = Settings(folder=run.folder, port=0)  # 0 is any port that is free
    server = processes.Process(
        target=serve, args=(settings,), kwargs={"started": addresses.put}, daemon=True
    )
    server.start()
    try:
        address = addresses.get(timeout=120)
        for weight in (0.0, 0.5, 1.0):  # of equal selection rates
            question = {"inputs": PERSON, "preference": [1 - weight, weight]}
            answer = ask(f"{address}/predict", question)
            (chance,) = answer["probabilities"]
            print(f"weight {weight} on equal rates: above 50,000 with probability {chance:.2f}")
    finally:
        server.terminate()  # it finishes the requests under way
        server.join()
    print(f"the server ended with exit code {server.exitcode}")
