"""The HTML report: one file that explains a run, a matrix or a search, without a network request.

folds      a run log, event by event, into the data of all views; ``tables``, what the views share
views      one module for each view: what it keeps of the log, and its data for the page
summaries  the first screen in words; ``stages``, its space-time picture; ``troubles``, chains of causes, and what a
           cluster said; ``remedies``, side by side
pages      from folded runs to the HTML file; ``shells``, its template, compression and content security policy
source     the page's JavaScript, one module for each view, and its styles; ``scripts/genpage`` makes ``bundle`` of it

The data contract
-----------------
:func:`folds.Fold.data` makes one JSON object for each run. Its keys are the names of the views, beside:

``name``     of the variant; empty where there is only one run
``strings``  all texts; columns refer to them by index
``pods``     columns, one entry for each pod; every other view names a pod by its index here
``nodes``    likewise
``actors``   names; events refer to them by index
``end``      of the run

A column is an array, or ``{"deltas": […]}`` with the differences from value to value; the columns of one table have
equal length. Times are whole microseconds of virtual time, -1 means
never. An event is named by its place in the run log, from 0, -1 means none. A new view is a class in ``views`` (the
protocol :class:`views.view.View`), an entry in ``folds.VIEWS``, and a module in ``source/views`` that is entered in
``source/page.js``. While a run goes on the same object is made again and passed to ``kemuPage.update``.
"""
