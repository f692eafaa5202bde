"""Array types and dtypes: families, names, promotion; may import base and trees."""
