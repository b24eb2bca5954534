"""Reports to open in a browser: one HTML file for a study or for all runs, read from run folders alone.

study.py and runs.py gather what a page shows, html.py packs it with page/ (HTML, CSS, JavaScript) and plotly into one
file, serve.py keeps it fresh on localhost, and headline.py draws a study's committed table.
"""
