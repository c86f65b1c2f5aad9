# The same commands for people and for CI. Every target makes .venv on first use and is a no-op later.
PYTHON ?= python3
VENV := .venv
SOME := co,fhmm,seq2point,bert4nilm,mean,off,prior
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: help demo test coverage slow lint docs format bench figures reproduce clean

help:            ## list the targets
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1|/' | column -t -s '|'

demo: $(VENV)/.user            ## train a defence for the embedded household, attack it before and after; ends with a table and a report
	$(BIN)/meterveil demo

test: $(VENV)/.dev             ## run the fast tests on two cores
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not slow"

coverage: $(VENV)/.dev         ## run the fast tests and list what they do not cover
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not slow" --cov --cov-report=term:skip-covered

slow: $(VENV)/.dev             ## run the slow tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m slow

lint: $(VENV)/.dev             ## check style, complexity, imports, types and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site

docs: $(VENV)/.dev             ## build the documentation site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

format: $(VENV)/.dev           ## fix what the linter can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev            ## measure speed, as ratios within one run; writes benchmarks/latest.json
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/read_channel.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/simulate.py --picture
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/plan.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/citylearn.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/classical.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/neural.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/bundle.py
	$(BIN)/python benchmarks/soak.py --days 3
	$(BIN)/python benchmarks/speed_table.py

figures: bench                 ## draw every picture and fill every table of README and docs from what is recorded (needs Chromium)
	$(BIN)/python -m experiments.demo_picture
	$(BIN)/meterveil report --leaderboards docs/img
	$(BIN)/python -m experiments.battery_chart --picture
	$(BIN)/python -m experiments.decoys --picture
	$(BIN)/python -m experiments.small_batteries --picture
	$(BIN)/python -m experiments.alignment --picture
	$(BIN)/python -m experiments.behaviour --picture
	$(BIN)/python -m experiments.refits --picture
	$(BIN)/python -m experiments.training_observations --picture
	$(BIN)/python -m experiments.presence_check
	$(BIN)/python -m experiments.fidelity_page --picture
	$(BIN)/python -m experiments.plants --picture
	$(BIN)/pytest -q tests/data/test_synthetic_realism.py

reproduce: $(VENV)/.dev        ## measure every table of the paper and every study of docs (needs METERVEIL_DATA; hours)
	$(BIN)/meterveil signatures build --out out/library.json
	$(BIN)/meterveil reproduce
	$(BIN)/meterveil report
	for house in redd ukdale; do \
		$(BIN)/meterveil attack $$house --results results --pictures docs/img || exit; \
		$(BIN)/meterveil attack $$house --results results --held-out || exit; \
		$(BIN)/meterveil attack $$house --results results --cross --attackers $(SOME) || exit; done
	$(BIN)/meterveil attack ukdale --results results --held-out --training-days 40 --attackers $(SOME)
	$(BIN)/meterveil attack ukdale --results results --held-out --reserve-days 40 --attackers $(SOME)
	$(BIN)/meterveil attack ukdale --results results --aggregate submeters --attackers co,fhmm,mean,off,prior
	$(BIN)/python -m experiments.informed_attack --library out/library.json
	$(BIN)/python -m experiments.informed_attack --library out/library.json --training-days 40 --budget-kwh 4 --defences flat_decoys veil
	$(BIN)/python -m experiments.informed_attack --library out/library.json --training-days 40 --budget-kwh 2 --defences flat_decoys
	$(BIN)/python -m experiments.behaviour --library out/library.json
	$(BIN)/python -m experiments.behaviour --library out/library.json --houses ukdale_1 --meters "1 min, 10 W" "15 min" "30 min"
	$(BIN)/python -m experiments.refits --library out/library.json --houses ukdale_1 refit_2
	$(BIN)/python -m experiments.refits --library out/library.json --houses ukdale_1 --defence best_effort
	$(BIN)/python -m experiments.refits --library out/library.json --houses redd_2 --defence none
	$(BIN)/python -m experiments.crossing --library out/library.json
	$(BIN)/python -m experiments.seconds --library out/library.json
	$(BIN)/python -m experiments.battery_chart
	$(BIN)/python -m experiments.decoys --library out/library.json
	$(BIN)/python -m experiments.small_batteries
	$(BIN)/python -m experiments.adaptive_curve redd random_equal
	$(BIN)/python -m experiments.adaptive_curve redd random_equal --attackers seq2point --epochs 3 10 30
	$(BIN)/python -m experiments.alignment --library out/library.json
	$(BIN)/python -m experiments.fidelity --library out/library.json
	$(BIN)/python -m experiments.training_observations --library out/library.json
	for house in redd ukdale; do for seed in 0 1 2 3 4; do \
		$(BIN)/meterveil train $$house --library out/library.json --seed $$seed --out out/behaviour/$$house/ours/$$seed || exit; done; \
		$(BIN)/python -m experiments.battery_hours out/behaviour/$$house/ours random_equal:8 flat flat_decoys --on $$house || exit; done
	$(BIN)/python -m experiments.paper_pictures out/behaviour/redd/ours/0 out/behaviour/ukdale/ours/0
	$(BIN)/python -m experiments.household_statistics synthetic $(METERVEIL_DATA)/ukdale:1 $(METERVEIL_DATA)/redd:2
	$(BIN)/python -m experiments.untrained_defences
	$(BIN)/python -m experiments.plants
	$(BIN)/python -m experiments.ddql_defences fast
	$(BIN)/python -m experiments.audit_training --reuse

clean:           ## remove what the other targets made
	rm -rf $(VENV) out build src/meterveil/data/_lines*.so .coverage .coverage.* htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} + -o -name '*.egg-info' -prune -exec rm -rf {} +

$(VENV)/.user: pyproject.toml constraints.txt src/meterveil/data/_lines.c | $(VENV)/bin/python
	@echo "installing into $(VENV), torch among it: some minutes the first time"
	$(BIN)/pip install -q -e '.[train]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt src/meterveil/data/_lines.c | $(VENV)/bin/python
	@echo "installing into $(VENV), torch among it: some minutes the first time"
	$(BIN)/pip install -q -e '.[dev]'
	touch $@ $(VENV)/.user

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "meterveil needs Python 3.11 or newer; use make PYTHON=python3.11"'
	$(PYTHON) -m venv $(VENV)
