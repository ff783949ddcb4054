"""The parts of gpu_campaign.py."""
